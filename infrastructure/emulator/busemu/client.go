package busemu

import (
	"context"
	"net"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// Client returns an SDK client for the first key, connected by Dial in memory. Closing it is
// optional: Server.Close ends its connections.
func (s *Server) Client() *azservicebus.Client {
	client, err := azservicebus.NewClientFromConnectionString(s.ConnectionString(), s.ClientOptions())
	if err != nil {
		panic("busemu: own connection string: " + err.Error()) // cannot happen: it was built here
	}
	return client
}

// ClientOptions makes an SDK client connect by Dial in memory. It works in a testing/synctest
// bubble, where sockets do not.
func (s *Server) ClientOptions() *azservicebus.ClientOptions {
	return &azservicebus.ClientOptions{
		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			return s.Dial(ctx)
		},
	}
}
