// Eks-verify judges an EKS token as a cluster's own authenticator does, with the verifier of aws-iam-authenticator.
//
// The verifier sends the presigned request to STS; here every connection goes to -sts, a local TLS address, and is
// verified against -ca under the name in the token. The token is read from stdin, the identity is printed as JSON.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"sigs.k8s.io/aws-iam-authenticator/pkg/token"
)

func main() {
	cluster := flag.String("cluster", "", "cluster id that the token must be signed for")
	partition := flag.String("partition", "aws", "AWS partition: aws, aws-cn, aws-us-gov, …")
	region := flag.String("region", "us-east-1", "region that is accepted even if the SDK does not know it")
	sts := flag.String("sts", "", "host:port that stands in for STS")
	ca := flag.String("ca", "", "file with the CA certificates to trust for it")
	flag.Parse()
	if err := verify(*cluster, *partition, *region, *sts, *ca); err != nil {
		fmt.Fprintln(os.Stderr, "eks-verify:", err)
		os.Exit(1)
	}
}

func verify(cluster, partition, region, sts, ca string) error {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return errors.New("no certificate in " + ca)
	}
	// The verifier has no option for its client, which uses the default transport.
	http.DefaultTransport = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", sts)
		},
		TLSClientConfig: &tls.Config{RootCAs: roots},
	}
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	identity, err := token.NewVerifier(cluster, partition, region).Verify(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(identity)
}
