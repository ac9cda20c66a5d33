// Built shows what the access library makes of ClusterProfiles: for each case of the JSON list on stdin, it builds the
// rest.Configs of the case's profiles, in turn and with one provider file, and prints them in one JSON line.
//
// A profile that the library refuses gives {"error": …}, one that it panics on {"panic": …}.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
)

// Case is a provider file and the profiles that are built with it.
type Case struct {
	File     json.RawMessage   `json:"file"`
	Profiles []json.RawMessage `json:"profiles"`
}

// Built is what a rest.Config says about one cluster.
type Built struct {
	Error              string          `json:"error,omitempty"`
	Panic              string          `json:"panic,omitempty"`
	Server             string          `json:"server"`
	CA                 []byte          `json:"ca"`
	TLSServerName      string          `json:"tls-server-name"`
	Insecure           bool            `json:"insecure"`
	DisableCompression bool            `json:"disable-compression"`
	Proxy              string          `json:"proxy"`
	APIVersion         string          `json:"apiVersion"`
	Command            string          `json:"command"`
	Args               []string        `json:"args"`
	Env                [][2]string     `json:"env"`
	ProvideClusterInfo bool            `json:"provideClusterInfo"`
	Config             json.RawMessage `json:"config"`
}

func main() {
	var cases []Case
	exitOn(json.NewDecoder(os.Stdin).Decode(&cases))
	for _, each := range cases {
		exitOn(json.NewEncoder(os.Stdout).Encode(all(each)))
	}
}

func all(given Case) []Built {
	var library access.Config
	fileError := json.Unmarshal(given.File, &library)
	found := make([]Built, len(given.Profiles))
	for index, profile := range given.Profiles {
		if fileError != nil {
			found[index] = Built{Error: fileError.Error()}
			continue
		}
		found[index] = one(&library, profile)
	}
	return found
}

func one(library *access.Config, text json.RawMessage) (built Built) {
	defer func() {
		if reason := recover(); reason != nil {
			built = Built{Panic: fmt.Sprint(reason)}
		}
	}()
	var profile v1alpha1.ClusterProfile
	if err := json.Unmarshal(text, &profile); err != nil {
		return Built{Error: err.Error()}
	}
	config, err := library.BuildConfigFromCP(&profile)
	if err == nil {
		// What client-go itself refuses counts as refused.
		_, err = rest.TLSConfigFor(&rest.Config{TLSClientConfig: config.TLSClientConfig})
	}
	if err != nil {
		return Built{Error: err.Error()}
	}
	return shown(config)
}

func shown(config *rest.Config) Built {
	exec := config.ExecProvider
	built := Built{
		Server:             config.Host,
		CA:                 config.CAData,
		TLSServerName:      config.ServerName,
		Insecure:           config.Insecure,
		DisableCompression: config.DisableCompression,
		APIVersion:         exec.APIVersion,
		Command:            exec.Command,
		Args:               exec.Args,
		ProvideClusterInfo: exec.ProvideClusterInfo,
	}
	for _, each := range exec.Env {
		built.Env = append(built.Env, [2]string{each.Name, each.Value})
	}
	if proxy, err := config.Proxy(&http.Request{}); err != nil {
		return Built{Error: err.Error()}
	} else if proxy != nil {
		built.Proxy = proxy.String()
	}
	if unknown, ok := exec.Config.(*runtime.Unknown); ok {
		built.Config = unknown.Raw
	}
	return built
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "built:", err)
		os.Exit(1)
	}
}
