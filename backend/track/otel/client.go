package otel

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/goart-dev/art/internal/secret"
)

// newClient returns the client for a signal, "TRACES" or "METRICS": the exporters' own would send their headers
// wherever they are redirected, and put into errors whatever a receiver answers. In return the variables of
// OpenTelemetry that name certificates are read here; the others are read by the exporters.
func newClient(signal string, timeout time.Duration) (*http.Client, error) {
	config, err := tlsConfig(signal)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if config != nil {
		transport.TLSClientConfig = config
	}
	return secret.Client(&http.Client{Transport: masking{transport}, Timeout: timeout}), nil
}

// variable returns the value of a variable of a signal, and otherwise of all signals, and which it is.
func variable(signal, name string) (which, value string) {
	all, own := "OTEL_EXPORTER_OTLP_"+name, "OTEL_EXPORTER_OTLP_"+signal+"_"+name
	if value := strings.TrimSpace(os.Getenv(own)); value != "" {
		return own, value
	}
	return all, strings.TrimSpace(os.Getenv(all))
}

// tlsConfig returns what the environment says of certificates, nil for nothing.
func tlsConfig(signal string) (*tls.Config, error) {
	which, file := variable(signal, "CERTIFICATE")
	config := &tls.Config{}
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", which, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("%s: %s has no certificate", which, file)
		}
	}
	which, certificate := variable(signal, "CLIENT_CERTIFICATE")
	_, key := variable(signal, "CLIENT_KEY")
	if certificate != "" && key != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", which, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if config.RootCAs == nil && config.Certificates == nil {
		return nil, nil
	}
	return config, nil
}

// maxAnswer bounds the body of an answer, in bytes.
const maxAnswer = 4 << 20

// masking replaces what the headers of a request say in the body of an answer that is a success: the message of a
// partial success is put into errors too, and into the log of the SDK. Lengths stay, on which protobuf depends.
type masking struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (m masking) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := m.next.RoundTrip(req)
	if err != nil || response.StatusCode/100 != 2 {
		return response, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	if err = cmp.Or(err, response.Body.Close()); err != nil {
		return nil, err
	}
	secrets := secret.OfHeader(req.Header)
	if strings.Contains(response.Header.Get("Content-Type"), "json") {
		body = []byte(secret.Hide(string(body), secrets))
	} else {
		body = mask(body, secrets)
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// mask replaces secrets by as many asterisks.
func mask(body []byte, secrets []string) []byte {
	for _, s := range secrets {
		if len(s) >= 6 { // shorter ones may be anywhere in protobuf
			body = bytes.ReplaceAll(body, []byte(s), bytes.Repeat([]byte("*"), len(s)))
		}
	}
	return body
}
