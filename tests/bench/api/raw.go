package api

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/google/uuid"
)

// rawClient writes HTTP/1.1 requests on one connection and reads answers without a body. It
// has one request in flight.
type rawClient struct {
	conn    net.Conn
	request []byte
	reply   [2 << 10]byte // an answer has some 500 bytes
}

func dialRaw(ctx context.Context, address string) (*rawClient, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &rawClient{conn: conn}, nil
}

func (c *rawClient) Close() error { return c.conn.Close() }

// updates posts update-name for one contact after the other. Each side has its own names,
// because the API does nothing if a contact has the name already.
func (c *rawClient) updates(side string, ids []uuid.UUID) worker {
	heads := make([]string, len(ids))
	for i, id := range ids {
		heads[i] = fmt.Sprintf("POST /api/contacts/%s/update-name HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ", id)
	}
	var body []byte
	n := 0
	return func(context.Context) error {
		n++
		body = append(append(body[:0], `{"firstName":"`...), side...)
		body = append(strconv.AppendInt(append(body, ' '), int64(n), 10), `","lastName":"Doe"}`...)
		c.request = strconv.AppendInt(append(c.request[:0], heads[n%len(heads)]...), int64(len(body)), 10)
		c.request = append(append(c.request, "\r\n\r\n"...), body...)
		if _, err := c.conn.Write(c.request); err != nil {
			return err
		}
		return c.expectNoContent()
	}
}

var (
	noContent = []byte("HTTP/1.1 204 No Content\r\n")
	blankLine = []byte("\r\n\r\n")
)

// expectNoContent reads up to the blank line, with which a 204 ends (RFC 9112 6.3).
func (c *rawClient) expectNoContent() error {
	for read := 0; ; {
		n, err := c.conn.Read(c.reply[read:])
		read += n
		reply := c.reply[:read]
		switch {
		case read >= len(noContent) && !bytes.HasPrefix(reply, noContent):
			return fmt.Errorf("an update was answered with %q", reply)
		case bytes.HasSuffix(reply, blankLine):
			return nil
		case err != nil:
			return err
		case read == len(c.reply):
			return fmt.Errorf("an answer is longer than %d bytes", read)
		}
	}
}
