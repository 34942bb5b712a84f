package broker

// readyList has the messages that can be delivered, in order of sequence number. New messages
// have the highest numbers and go to the end of a list. Returned messages go to a heap, so
// that thousands of them, in any order, stay cheap. Of swapped out messages only the numbers
// are kept, perhaps with numbers of removed messages.
type readyList struct {
	head, tail *message
	n          int // of all three parts
	returned   messageHeap
	swapped    sequences
}

func (l *readyList) push(m *message) {
	l.n++
	l.link(m)
}

// link adds a message that is in n already.
func (l *readyList) link(m *message) {
	m.place = inReady
	if l.tail != nil && m.sequence < l.tail.sequence {
		l.returned.push(m)
		return
	}
	m.prev = l.tail
	if l.tail == nil {
		l.head = m
	} else {
		l.tail.next = m
	}
	l.tail = m
}

// first returns the first message that is in memory, nil if there is none.
func (l *readyList) first() *message {
	if len(l.returned) > 0 && (l.head == nil || l.returned[0].sequence < l.head.sequence) {
		return l.returned[0]
	}
	return l.head
}

// remove removes m, which is in the list.
func (l *readyList) remove(m *message) {
	l.n--
	l.unlink(m)
}

// swapOut keeps only the number of m, which is in the list. It returns false, and m stays in
// memory, if m comes before a message swapped out earlier.
func (l *readyList) swapOut(m *message) bool {
	if !l.swapped.push(m.sequence) {
		return false
	}
	l.unlink(m)
	return true
}

func (l *readyList) unlink(m *message) {
	m.place = nowhere
	if m.heapIndex > 0 {
		l.returned.remove(m)
		return
	}
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
