package order

// The events of an order. Each is stored as the JSON of its struct, and its action is the
// subject of its message.
type (
	// Placed says that there is a new order.
	Placed struct {
		Customer string `json:"customer"`
	}
	// LineAdded says that goods were added. Each line has an event of its own.
	LineAdded struct {
		Line Line `json:"line"`
	}
	// Shipped says that the goods are on their way. It is an order's last event.
	Shipped struct {
		Total int64 `json:"total"` // in cents
	}
	// Cancelled says that nothing will be shipped. It is an order's last event.
	Cancelled struct{}
)

func (Placed) Action() string    { return "OrderPlacedEvent" }
func (LineAdded) Action() string { return "OrderLineAddedEvent" }
func (Shipped) Action() string   { return "OrderShippedEvent" }
func (Cancelled) Action() string { return "OrderCancelledEvent" }
