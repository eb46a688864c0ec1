// Asks a broker for its versions over TLS and logs the keys: main ENDPOINT CA KEYLOG.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	pem, err := os.ReadFile(os.Args[2])
	must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	keys, err := os.Create(os.Args[3])
	must(err)
	defer keys.Close()
	connection, err := tls.Dial("tcp", os.Args[1], &tls.Config{RootCAs: roots, KeyLogWriter: keys})
	must(err)
	defer connection.Close()
	// ApiVersions 0, correlation id 1, client id "go".
	_, err = connection.Write([]byte{0, 0, 0, 12, 0, 18, 0, 0, 0, 0, 0, 1, 0, 2, 'g', 'o'})
	must(err)
	head := make([]byte, 4)
	_, err = io.ReadFull(connection, head)
	must(err)
	body := make([]byte, binary.BigEndian.Uint32(head))
	_, err = io.ReadFull(connection, body)
	must(err)
	fmt.Printf("{\"event\":\"done\",\"what\":\"%d bytes\"}\n", len(body))
}
