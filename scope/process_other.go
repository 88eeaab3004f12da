//go:build !linux && !darwin

package scope

// processStarted cannot be told here: a note holds for a minute, in which no number is used twice.
func processStarted(int) string { return "" }
