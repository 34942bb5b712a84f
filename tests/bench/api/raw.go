package api

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"

	"github.com/google/uuid"
)

// rawClient writes HTTP/1.1 requests on one connection and reads answers
// without a body.
type rawClient struct {
	conn   net.Conn
	reader *bufio.Reader
	buffer bytes.Buffer
}

func dialRaw(ctx context.Context, address string) (*rawClient, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &rawClient{conn: conn, reader: bufio.NewReader(conn)}, nil
}

func (c *rawClient) Close() error { return c.conn.Close() }

// updates posts update-name for one contact after the other. The names of a side are
// its own: the API does nothing where a name is the contact's already.
func (c *rawClient) updates(side string, ids []uuid.UUID) worker {
	n := 0
	return func(context.Context) error {
		n++
		body := fmt.Sprintf(`{"firstName":"%s %d","lastName":"Doe"}`, side, n)
		c.buffer.Reset()
		fmt.Fprintf(&c.buffer, "POST /api/contacts/%s/update-name HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			ids[n%len(ids)], len(body), body)
		if _, err := c.conn.Write(c.buffer.Bytes()); err != nil {
			return err
		}
		return c.expectNoContent()
	}
}

func (c *rawClient) expectNoContent() error {
	status, err := c.reader.ReadString('\n')
	if err != nil {
		return err
	}
	for {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) == 2 {
			break
		}
	}
	if status != "HTTP/1.1 204 No Content\r\n" {
		return fmt.Errorf("an update was answered with %q", status)
	}
	return nil
}
