// Package live drives the real agent clients, pinned, against a scripted model on loopback, so that what a client does
// with our answers is tested without an account. It never touches the developer's own configuration: a client runs in
// a [Sandbox] with a scratch home, an environment of its own and no address but 127.0.0.1. Every run ends with its
// context.
//
// A test writes [Programs], starts a [Model] with them, gets the clients by [Install], and prompts a client with
// "PROGRAM:name". What the client sent to the model is in [Model.Requests] and [Model.Results].
package live
