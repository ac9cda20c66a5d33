// Kueue-strict decodes configuration files with the types of an older Kueue, strictly, as its manager does.
//
// It prints one JSON line per file: the error, or the providers that Kueue would use. The manager's further validation
// comes with all of Kueue, and is the same as in the newer one beside this.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	configapi "sigs.k8s.io/kueue/apis/config/v1beta2"
)

// Fact is what Kueue makes of one file.
type Fact struct {
	Error     string `json:"error,omitempty"`
	Providers any    `json:"providers,omitempty"`
}

func main() {
	scheme := runtime.NewScheme()
	utilruntime.Must(configapi.AddToScheme(scheme))
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder()
	for _, path := range os.Args[1:] {
		fact := Fact{}
		if err := fact.read(path, decoder); err != nil {
			fact.Error = err.Error()
		}
		if err := json.NewEncoder(os.Stdout).Encode(fact); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func (f *Fact) read(path string, decoder runtime.Decoder) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	loaded := configapi.Configuration{}
	if err := runtime.DecodeInto(decoder, content, &loaded); err != nil {
		return err
	}
	if loaded.MultiKueue != nil && loaded.MultiKueue.ClusterProfile != nil {
		f.Providers = loaded.MultiKueue.ClusterProfile
	}
	return nil
}
