package session

// Form is how the answer to a request goes out where a transport has a choice.
type Form uint8

// The forms.
const (
	// Waiting: what is said before the answer reaches the client, all of it.
	// Who says it waits for a client that is behind.
	Waiting Form = iota
	// Passing: a client that is behind misses what is said before the answer.
	// Nobody waits for it.
	Passing
	// AtOnce: nothing is said before the answer.
	AtOnce
	// Streaming: what is said is what was asked for, so it is said whatever the
	// client has told of the forms that it takes.
	Streaming
)

// Formed is a Surface that does not have all its requests answered as Waiting.
type Formed interface {
	// Form returns how requests of a method are answered.
	Form(method string) Form
}
