// Consumer does what a multicluster controller does: it reads ClusterProfiles from the hub, lets the access library
// turn each into a rest.Config by the provider file, and asks the spoke who it is and which namespaces there are.
//
// It prints one JSON line per profile and round. With -again it keeps the clients and does one more round for each
// line it reads from stdin, so that a test can rotate a Secret in between.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/metrics"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/client/clientset/versioned"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
)

// Fact is what one round found out about one profile.
type Fact struct {
	Profile    string   `json:"profile"`
	User       string   `json:"user,omitempty"`
	Groups     []string `json:"groups,omitempty"`
	Namespaces []string `json:"namespaces,omitempty"`
	Error      string   `json:"error,omitempty"`
	Args       int      `json:"args"` // arguments that the access library gives the plugin
	Runs       int64    `json:"runs"` // plugin runs of this process so far, as client-go counts them
	Seconds    float64  `json:"seconds"`
}

// runs counts plugin runs through client-go's own metric.
type runs struct{ count atomic.Int64 }

func (r *runs) Increment(int, string) { r.count.Add(1) }

var plugin runs

func main() {
	providerFile := access.SetupProviderFileFlag()
	hub := flag.String("hub", "", "kubeconfig of the hub; empty: in-cluster")
	file := flag.String("profile-file", "", "read the profiles from this JSON list instead of the hub")
	namespace := flag.String("namespace", "default", "namespace of the ClusterProfiles")
	builds := flag.Int("builds", 1, "build each rest.Config so often, in turn, and use the last")
	every := flag.Bool("every", false, "ask the spoke after each build, not only after the last")
	again := flag.Bool("again", false, "one more round with the same clients for each line of stdin")
	flag.Parse()
	metrics.Register(metrics.RegisterOpts{ExecPluginCalls: &plugin})

	library, err := access.NewFromFile(*providerFile)
	exitOn(err)
	profiles, err := readProfiles(*file, *hub, *namespace, flag.Args())
	exitOn(err)
	configs := make([]*rest.Config, len(profiles))
	for build := 1; build <= *builds; build++ {
		for index := range profiles {
			configs[index], err = library.BuildConfigFromCP(&profiles[index])
			exitOn(err)
		}
		if *every || build == *builds {
			round(profiles, configs)
		}
	}
	for lines := bufio.NewScanner(os.Stdin); *again && lines.Scan(); {
		round(profiles, configs)
	}
}

func readProfiles(file, hub, namespace string, names []string) ([]v1alpha1.ClusterProfile, error) {
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var profiles []v1alpha1.ClusterProfile
		return profiles, json.Unmarshal(data, &profiles)
	}
	config, err := clientcmd.BuildConfigFromFlags("", hub)
	if err != nil {
		return nil, err
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	profiles := make([]v1alpha1.ClusterProfile, len(names))
	for index, name := range names {
		found, err := client.ApisV1alpha1().ClusterProfiles(namespace).Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		profiles[index] = *found
	}
	return profiles, nil
}

func round(profiles []v1alpha1.ClusterProfile, configs []*rest.Config) {
	for index, config := range configs {
		start := time.Now()
		fact := Fact{Profile: profiles[index].Name, Args: len(config.ExecProvider.Args)}
		if err := ask(config, &fact); err != nil {
			fact.Error = err.Error()
		}
		fact.Runs, fact.Seconds = plugin.count.Load(), time.Since(start).Seconds()
		exitOn(json.NewEncoder(os.Stdout).Encode(fact))
	}
}

func ask(config *rest.Config, fact *Fact) error {
	// client-go keeps the credential and the connections per config, not per clientset.
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(
		context.Background(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	fact.User, fact.Groups = review.Status.UserInfo.Username, review.Status.UserInfo.Groups
	list, err := client.CoreV1().Namespaces().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, item := range list.Items {
		fact.Namespaces = append(fact.Namespaces, item.Name)
	}
	return nil
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "consumer:", err)
		os.Exit(1)
	}
}
