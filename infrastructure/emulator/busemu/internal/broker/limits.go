package broker

import (
	"unicode/utf8"
)

const maxKeyLength = 128 // characters of a message id, session id or partition key

// check refuses a batch that breaks a rule of the entity. Called with in.mu.
func (in *inlet) check(batch []Message) error {
	if err := in.maySend(); err != nil {
		return err
	}
	if len(batch) == 0 {
		return errorf(NotAllowed, "The batch holds no messages.")
	}
	size := 0
	for i := range batch {
		if err := in.checkMessage(&batch[i]); err != nil {
			return err
		}
		size += len(batch[i].Payload)
	}
	if size > in.config.maxBatch {
		return tooLarge("batch", size, in.config.maxBatch)
	}
	if err := in.checkPartition(batch); err != nil {
		return err
	}
	for _, t := range in.targets {
		if reason := t.matcher.unsupported(); reason != "" {
			return errorf(NotImplemented, "The emulator cannot send to '%s': %s", in.path, reason)
		}
	}
	quota := in.config.quota
	if in.config.quotaOverride > 0 {
		quota = in.config.quotaOverride
	}
	if held := in.size.Load(); held+int64(size) > quota {
		return errorf(ResourceLimitExceeded, "The maximum entity size has been reached or exceeded for '%s'. Size of entity in bytes: %d, max entity size in bytes: %d.",
			in.path, held, quota)
	}
	return nil
}

func (in *inlet) checkMessage(m *Message) error {
	if len(m.Payload) > in.config.maxMessage {
		return tooLarge("message", len(m.Payload), in.config.maxMessage)
	}
	for _, k := range [...]struct{ what, value string }{
		{"MessageId", m.MessageID}, {"SessionId", m.SessionID}, {"PartitionKey", m.PartitionKey},
	} {
		if len(k.value) > maxKeyLength && utf8.RuneCountInString(k.value) > maxKeyLength {
			return errorf(NotAllowed, "The %s of a message is longer than %d characters.", k.what, maxKeyLength)
		}
	}
	switch {
	case in.config.needsSession && !m.HasSession:
		return errorf(NotAllowed, "The SessionId was not set on a message, and it cannot be sent to the entity. "+
			"Entities that have session support enabled can only receive messages that have the SessionId set to a valid value.")
	case m.HasSession && m.PartitionKey != "" && m.PartitionKey != m.SessionID:
		return errorf(NotAllowed, "PartitionKey '%s' and SessionId '%s' of a message differ. They must be the same if both are set.", m.PartitionKey, m.SessionID)
	case m.TTL < 0:
		return errorf(NotAllowed, "The time to live of a message is negative.")
	}
	return nil
}

func tooLarge(what string, size, limit int) *Error {
	return errorf(MessageSizeExceeded, "The received %s of %d bytes exceeds the limit of %d bytes currently allowed on the link.", what, size, limit)
}
