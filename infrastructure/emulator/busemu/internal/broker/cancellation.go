package broker

func messageNotFound(sequence int64, state, path string) *Error {
	return errorf(MessageNotFound, "There is no %s message with sequence number %d in '%s'.", state, sequence, path)
}

// cancellation removes several messages of a holder in one operation.
type cancellation struct {
	holder   *holder
	messages []*message
	recorded []bool
	done     func(error)
}

func (o *cancellation) write(w *writer) {
	for i, m := range o.messages {
		w.deleteMessage(o.holder.id, m, o.recorded[i])
	}
}

func (o *cancellation) publish(*callbacks) {}

func (o *cancellation) finish(err error) { o.done(err) }
