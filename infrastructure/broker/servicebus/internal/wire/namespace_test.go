package wire

import "testing"

func TestAddressHasTheDefaultPort(t *testing.T) {
	const key = ";SharedAccessKeyName=a;SharedAccessKey=b"
	for _, tt := range []struct{ connection, want string }{
		{"Endpoint=sb://x" + key, "x:5671"},
		{"Endpoint=sb://x:7/" + key, "x:7"},
		{"Endpoint=sb://[::1]:7/" + key, "[::1]:7"},
		{"Endpoint=sb://localhost" + key + ";UseDevelopmentEmulator=true;", "plain localhost:5672"},
		{"usedevelopmentemulator=1;Endpoint=sb://localhost:99" + key, "plain localhost:99"},
		{"UseDevelopmentEmulator=false;Endpoint=sb://localhost" + key, "localhost:5671"},
		{"Endpoint=sb://x;SharedAccessKeyName=UseDevelopmentEmulator=true;SharedAccessKey=b", "x:5671"},
	} {
		n, err := NewNamespace(Config{ConnectionString: tt.connection})
		if err != nil {
			t.Errorf("%s: %v", tt.connection, err)
			continue
		}
		got := n.address()
		if n.emulator {
			got = "plain " + got
		}
		if got != tt.want {
			t.Errorf("%s: %s; want %s", tt.connection, got, tt.want)
		}
	}
}
