// Kueue-config reads configuration files as Kueue's manager does at its start, strictly and with its validation.
//
// It prints one JSON line per file: the error, or the providers that Kueue would use.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	configapi "sigs.k8s.io/kueue/apis/config/v1beta2"
	"sigs.k8s.io/kueue/pkg/config"
	_ "sigs.k8s.io/kueue/pkg/controller/jobs/job" // the framework that is on by default must be known
)

// Fact is what Kueue makes of one file.
type Fact struct {
	Error     string `json:"error,omitempty"`
	Providers any    `json:"providers,omitempty"`
}

func main() {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(configapi.AddToScheme(scheme))
	for _, path := range os.Args[1:] {
		fact := Fact{}
		if _, loaded, err := config.Load(scheme, path); err != nil {
			fact.Error = err.Error()
		} else if loaded.MultiKueue != nil && loaded.MultiKueue.ClusterProfile != nil {
			fact.Providers = loaded.MultiKueue.ClusterProfile
		}
		if err := json.NewEncoder(os.Stdout).Encode(fact); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
