// Consumer-parse reads files as consumers do: provider files and ClusterProfiles with the access library, kubeconfigs
// with client-go, manifests strictly with the Go types of the Kubernetes API.
//
// It reads one JSON question per line from stdin, and prints one JSON answer per line.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
	"sigs.k8s.io/yaml"
)

// Question names files: a provider file, with it a ClusterProfile; a kubeconfig; or manifests.
type Question struct {
	Provider   string `json:"provider"`
	Profile    string `json:"profile"`
	Kubeconfig string `json:"kubeconfig"`
	Manifests  string `json:"manifests"`
}

// Answer is what the consumer's code makes of them.
type Answer struct {
	Error     string   `json:"error,omitempty"`
	Providers []string `json:"providers,omitempty"`
	Server    string   `json:"server,omitempty"`
	Exec      *Exec    `json:"exec,omitempty"`
	Kinds     []string `json:"kinds,omitempty"`
}

// Exec is the exec config that client-go would run.
type Exec struct {
	Command            string   `json:"command"`
	Args               []string `json:"args"`
	APIVersion         string   `json:"apiVersion"`
	InteractiveMode    string   `json:"interactiveMode"`
	InstallHint        string   `json:"installHint"`
	ProvideClusterInfo bool     `json:"provideClusterInfo"`
	Config             any      `json:"config"`
}

func main() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var question Question
		answer := &Answer{}
		err := json.Unmarshal(lines.Bytes(), &question)
		if err == nil {
			err = answer.fill(question)
		}
		if err != nil {
			answer = &Answer{Error: err.Error()}
		}
		if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func (a *Answer) fill(question Question) error {
	if question.Provider != "" {
		if err := a.readProviders(question.Provider, question.Profile); err != nil {
			return err
		}
	}
	if question.Kubeconfig != "" {
		if err := a.readKubeconfig(question.Kubeconfig); err != nil {
			return err
		}
	}
	if question.Manifests != "" {
		return a.readManifests(question.Manifests)
	}
	return nil
}

func (a *Answer) readProviders(file, profileFile string) error {
	library, err := access.NewFromFile(file)
	if err != nil {
		return err
	}
	for _, provider := range library.Providers {
		a.Providers = append(a.Providers, provider.Name)
	}
	if profileFile == "" {
		return nil
	}
	data, err := os.ReadFile(profileFile)
	if err != nil {
		return err
	}
	var profile v1alpha1.ClusterProfile
	if err := yaml.UnmarshalStrict(data, &profile); err != nil {
		return err
	}
	config, err := library.BuildConfigFromCP(&profile)
	if err != nil {
		return err
	}
	a.Server = config.Host
	return a.keep(config.ExecProvider)
}

func (a *Answer) keep(exec *clientcmdapi.ExecConfig) error {
	a.Exec = &Exec{
		exec.Command, exec.Args, exec.APIVersion, string(exec.InteractiveMode), exec.InstallHint,
		exec.ProvideClusterInfo, nil,
	}
	if unknown, ok := exec.Config.(*runtime.Unknown); ok && len(unknown.Raw) > 0 {
		return json.Unmarshal(unknown.Raw, &a.Exec.Config)
	}
	return nil
}

// readKubeconfig validates a kubeconfig as client-go does before it runs an exec plugin.
func (a *Answer) readKubeconfig(file string) error {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: file}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return err
	}
	a.Server = config.Host
	if config.ExecProvider == nil {
		return errors.New("its user has no exec config")
	}
	return a.keep(config.ExecProvider)
}

func (a *Answer) readManifests(file string) error {
	stream, err := os.Open(file)
	if err != nil {
		return err
	}
	defer stream.Close()
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(stream)); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		_, kind, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return err
		}
		a.Kinds = append(a.Kinds, kind.Kind)
	}
}
