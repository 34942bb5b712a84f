package store

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
)

// version is a feed entry that a transaction adds.
type version struct {
	at    position
	entry []byte
}

// logVersion records a create or replace. previous is the LSN of the previous version, 0 if
// there is none.
func (tx *Tx) logVersion(seq uint32, body []byte, previous uint64) {
	operation := `"create"`
	if previous > 0 {
		operation = `"replace","previousImageLSN":` + strconv.FormatUint(previous, 10)
	}
	entry := append(tx.versionHead(), `{"current":`...)
	entry = append(entry, body...)
	entry = append(tx.appendMetadata(entry, operation), "}}"...)
	tx.versions = append(tx.versions, version{position{tx.segment, tx.lsn, seq}, entry})
}

// logDeletion records a deletion with the item before it.
func (tx *Tx) logDeletion(seq uint32, item *Item, id string, expired bool) error {
	key, err := tx.keyMembers(item.Body)
	if err != nil {
		return err
	}
	name, err := json.Marshal(id)
	if err != nil {
		return fmt.Errorf("encode id: %w", err)
	}
	entry := tx.appendMetadata(append(tx.versionHead(), `{"current":{}`...), `"delete","previousImageLSN":`+strconv.FormatUint(item.LSN, 10))
	entry = fmt.Appendf(entry, `,"timeToLiveExpired":%t,"id":%s,"partitionKey":{%s}},"previous":`, expired, name, key)
	entry = append(append(entry, item.Body...), '}')
	tx.versions = append(tx.versions, version{position{tx.segment, tx.lsn, seq}, entry})
	return nil
}

func (tx *Tx) appendMetadata(dst []byte, operation string) []byte {
	return fmt.Appendf(dst, `,"metadata":{"lsn":%d,"crts":%d,"operationType":%s`, tx.lsn, tx.now/1000, operation)
}

// keyMembers returns the partition key values of a document by their paths, as JSON.
func (tx *Tx) keyMembers(body []byte) (string, error) {
	paths := tx.state.Definition.Paths
	doc, err := document.Parse(body, paths)
	if err != nil {
		return "", fmt.Errorf("read document: %w", err)
	}
	var members []string
	for i, v := range doc.Key {
		if v == epk.Undefined() {
			continue
		}
		name, err := json.Marshal(strings.Join(paths[i], "/"))
		if err != nil {
			return "", fmt.Errorf("encode path: %w", err)
		}
		value := []byte(v.String())
		if text, isText := v.Text(); isText {
			if value, err = json.Marshal(text); err != nil {
				return "", fmt.Errorf("encode partition key: %w", err)
			}
		}
		members = append(members, string(name)+":"+string(value))
	}
	return strings.Join(members, ","), nil
}

// versionHead returns the inputs of the page filters: time, effective and encoded partition
// key.
func (tx *Tx) versionHead() []byte {
	out := binary.BigEndian.AppendUint64(nil, uint64(tx.now))
	out = append(out, epkLength(len(tx.part.EPK)))
	out = append(out, tx.part.EPK...)
	out = binary.AppendUvarint(out, uint64(len(tx.part.encoded)))
	return append(out, tx.part.encoded...)
}

// Expire removes an expired document; found is false if there is none.
func (tx *Tx) Expire(id string) (found bool, err error) {
	ch, live, err := tx.find(id)
	if err != nil || live || ch != &tx.looked || !ch.exists {
		return false, err
	}
	if err := tx.logExpiry(ch); err != nil {
		return false, err
	}
	gone := *ch
	if err := tx.claim(&gone, nil); err != nil {
		return false, err
	}
	tx.record(gone)
	return true, nil
}

// logExpiry records a deletion if ch is a document that has expired but is still in the
// store.
func (tx *Tx) logExpiry(ch *change) error {
	if tx.state.Definition.Retention == 0 || ch != &tx.looked || !ch.exists {
		return nil
	}
	item, err := tx.load(ch)
	if err == nil {
		err = tx.logDeletion(tx.seq, &item, ch.id, true)
	}
	tx.seq++
	return err
}
