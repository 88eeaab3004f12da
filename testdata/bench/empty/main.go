// Command empty does nothing: the yardstick for whole processes.
package main

func main() {}
