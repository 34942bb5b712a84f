package broker

// OpenReceiver opens a receiver without session and without credit.
//
// It supports peek-lock, receive-and-delete and browsing. It refuses entities with sessions,
// except to browsers, and entities that forward (NotAllowed), and disabled ones
// (EntityDisabled).
func (b *Broker) OpenReceiver(path string, o ReceiverOptions) (*Receiver, error) {
	h, err := b.holderAt(path)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.mayReceive(); err != nil {
		return nil, err
	}
	if h.sessions != nil && o.Mode != Browse {
		return nil, errorf(NotAllowed, "It is not possible for an entity that requires sessions to create a non-sessionful message receiver.")
	}
	return h.newReceiver(nil, o), nil
}
