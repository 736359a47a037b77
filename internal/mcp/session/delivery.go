package session

// EventDelivery defines how events before the reply reach a client, where the transport has a choice.
type EventDelivery uint8

// The kinds of delivery.
const (
	// Waiting delivers all events; the sender waits for a slow client.
	Waiting EventDelivery = iota
	// Dropping drops events for a slow client; the sender never waits.
	Dropping
	// Direct has no events before the reply.
	Direct
	// Streaming has events as its content (a subscription), so it streams regardless of the client's Accept header.
	Streaming
)

// DeliveryChooser is an Endpoint that chooses a delivery per method. The default is Waiting.
type DeliveryChooser interface {
	// EventDeliveryOf returns the delivery for requests of a method.
	EventDeliveryOf(method string) EventDelivery
}
