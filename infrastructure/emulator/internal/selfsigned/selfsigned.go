// Package selfsigned creates the certificates that the emulators use if none is given. It can
// keep a certificate in a file, so that clients need to trust its authority only once.
package selfsigned

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

// New creates a certificate for localhost, the loopback addresses and hosts, which are names or
// addresses, with or without a port. The chain has a second certificate: its authority, whose key
// is not kept, because rustls refuses an authority as the certificate of a server.
func New(name string, hosts ...string) (tls.Certificate, error) {
	authority, err := issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: name + " CA"}, KeyUsage: x509.KeyUsageCertSign, IsCA: true, MaxPathLenZero: true,
	}, nil)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	for _, host := range hosts {
		// go-amqp verifies the name with the port, because it uses the whole Endpoint as the name.
		template.DNSNames = append(template.DNSNames, host)
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
			template.DNSNames = append(template.DNSNames, name)
		}
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		}
	}
	return issue(template, &authority)
}

// issue creates a certificate for a new key, signed by an authority, or by its own key without
// one. It is valid for ten years from a time in the past, so that clients with a slow clock
// accept it.
func issue(template *x509.Certificate, authority *tls.Certificate) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("create a key: %w", err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return tls.Certificate{}, fmt.Errorf("create a serial number: %w", err)
	}
	now := time.Now()
	template.NotBefore, template.NotAfter, template.BasicConstraintsValid = now.AddDate(-1, 0, 0), now.AddDate(10, 0, 0), true
	made := tls.Certificate{PrivateKey: key}
	parent, signer := template, any(key)
	if authority != nil {
		parent, signer, made.Certificate = authority.Leaf, authority.PrivateKey, authority.Certificate
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("create a certificate: %w", err)
	}
	if made.Leaf, err = x509.ParseCertificate(der); err != nil {
		return tls.Certificate{}, fmt.Errorf("read the certificate: %w", err)
	}
	made.Certificate = slices.Concat([][]byte{der}, made.Certificate)
	return made, nil
}

// PEM returns the certificates of c that clients must trust, without its key: the authorities, or
// the certificate itself if it has none.
func PEM(c tls.Certificate) []byte {
	if len(c.Certificate) > 1 {
		return chainPEM(c.Certificate[1:])
	}
	return chainPEM(c.Certificate)
}

func chainPEM(chain [][]byte) []byte {
	var text bytes.Buffer
	for _, der := range chain {
		text.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	return text.Bytes()
}
