"""Codes of the access library: `code: cause`, `-> remedy`, `eg example`."""

ACCESS_CODES = """
provider-file-invalid: The provider file cannot be used; the error names the field, or the line that is not JSON.
-> Correct it: JSON, each name once, an apiVersion, an absolute command, known policies; lint tells more.
eg execcred lint clusterprofile-provider-file.json
profile-invalid: The ClusterProfile, or the access provider that was chosen, has a field that cannot be used.
-> Correct it where it comes from, the cluster's manager: an https server, base64 CA data, each extension once.
eg kubectl get clusterprofile spoke-1 -o yaml
plugin-not-runnable: The command of the provider file does not exist here, is not executable, or is for another machine.
-> Mount the plugin's image at the path that the command begins with, or correct the command.
eg kubectl exec deploy/controller -- /plugins/bin/secretreader-plugin --version
plugin-starved: The controller had no open file, process or memory left to run the plugin with.
-> Raise its limits (pids and memory of the pod, open files), or let it reach fewer clusters at once.
eg kubectl exec deploy/controller -- sh -c 'ulimit -n; cat /sys/fs/cgroup/pids.max'
plugin-timeout: The plugin did not end in time, and was killed.
-> Run it by hand to see where it waits: network, DNS, a proxy, or a person's answer.
eg /plugins/bin/eks-plugin --cluster-name=spoke-1 --log-level=debug
plugin-failed: The plugin ended with another exit status than 0; what it said is in the error and in its notes.
-> Do what its own error says; `execcred explain` knows the code of each plugin of this suite.
eg execcred explain hub-forbidden
plugin-bad-answer: What the plugin printed is no credential: not one JSON object of the version that was asked for.
-> Let the plugin answer the apiVersion of the provider file, with a token or a whole pair, and print nothing else.
eg "apiVersion": "client.authentication.k8s.io/v1beta1"
"""
