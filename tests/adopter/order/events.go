package order

// The events of an order. Each is stored as the JSON of its struct. Its action is the subject of its
// message.
type (
	// Placed is the creation of an order.
	Placed struct {
		Customer string `json:"customer"`
	}
	// LineAdded is the addition of one line. Each line has its own event.
	LineAdded struct {
		Line Line `json:"line"`
	}
	// Shipped is the dispatch of the goods. It is an order's last event.
	Shipped struct {
		Total int64 `json:"total"` // in cents
	}
	// Cancelled is the cancellation. It is an order's last event.
	Cancelled struct{}
)

func (Placed) Action() string    { return "OrderPlacedEvent" }
func (LineAdded) Action() string { return "OrderLineAddedEvent" }
func (Shipped) Action() string   { return "OrderShippedEvent" }
func (Cancelled) Action() string { return "OrderCancelledEvent" }
