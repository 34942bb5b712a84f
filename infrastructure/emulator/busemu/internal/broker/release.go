package broker

// retain adds references to a body.
func (b *body) retain(n int) {
	if b.shared && b.owner.durable {
		b.owner.shares.add(b.sequence, n)
		return
	}
	b.refs.Add(int32(n))
}

// release drops one reference. The last one deletes the payload's own record, if there is one.
func (b *body) release(w *writer) {
	if b.shared && w != nil {
		if b.owner.shares.add(b.sequence, -1) > 0 {
			return
		}
		w.deletePayload(b.owner.id, b.sequence)
	} else if b.refs.Add(-1) > 0 {
		return
	}
	b.owner.size.Add(-int64(len(b.payload)))
}
