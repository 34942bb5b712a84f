package broker

// lockedList orders locked messages by the end of their locks. The locks of one holder have
// the same duration, so a message nearly always goes to the end.
type lockedList struct{ head, tail *message }

func (l *lockedList) insert(m *message) {
	after := l.tail
	for after != nil && after.lockedUntil > m.lockedUntil {
		after = after.prev
	}
	m.prev = after
	if after == nil {
		m.next, l.head = l.head, m
	} else {
		m.next, after.next = after.next, m
	}
	if m.next == nil {
		l.tail = m
	} else {
		m.next.prev = m
	}
}

func (l *lockedList) remove(m *message) {
	if m.prev == nil {
		l.head = m.next
	} else {
		m.prev.next = m.next
	}
	if m.next == nil {
		l.tail = m.prev
	} else {
		m.next.prev = m.prev
	}
	m.prev, m.next = nil, nil
}

// sessionList is a doubly linked list. A session is in one list at most.
type sessionList struct{ head, tail *session }

func (l *sessionList) append(s *session) { l.after(l.tail, s) }

// insert adds s after all sessions whose locks do not end later.
func (l *sessionList) insert(s *session) {
	prev := l.tail
	for prev != nil && prev.lockedUntil > s.lockedUntil {
		prev = prev.prev
	}
	l.after(prev, s)
}

func (l *sessionList) after(prev, s *session) {
	s.list, s.prev = l, prev
	if prev == nil {
		s.next, l.head = l.head, s
	} else {
		s.next, prev.next = prev.next, s
	}
	if s.next == nil {
		l.tail = s
	} else {
		s.next.prev = s
	}
}

// removeIf removes s from l, if it is in l.
func (l *sessionList) removeIf(s *session) {
	if s.list != l {
		return
	}
	if s.prev == nil {
		l.head = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		l.tail = s.prev
	} else {
		s.next.prev = s.prev
	}
	s.list, s.prev, s.next = nil, nil, nil
}
