// Package handling is what the consumer kits have in common behind their handlers: the
// decisions between the inbox, the handler and another try (Key), and lanes of keys for brokers
// that do not keep keys apart (Lanes, which draws the life of an event).
package handling
