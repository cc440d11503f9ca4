// Package hub fetches models from the Hugging Face hub into the cache that Python's huggingface_hub uses.
//
//	s, err := hub.Pull(ctx, "Qwen/Qwen3-0.6B@main", nil)
//	w, err := model.Load(s.Dir)
//
// [Pull] asks the hub for the commit of a revision and fetches the files that are not in the cache; [Cached] does not
// use the network. Only what a model needs is fetched: its configuration, its tokenizer and chat template, and its
// weights as safetensors. Its configuration comes first, and the Check of [Options] may refuse it before the rest.
// Pickled weights (.bin, .pth) can run code, and are ignored.
//
// # What is checked
//
// The hub names each file by a digest: the SHA-256 of a large file, the SHA-1 of a git blob of a small one. A file
// enters the cache only if its bytes have that digest. An interrupted download resumes where it stopped, in the same
// process or in a later one. Names outside of the repository, and links out of the cache, are errors. The token is sent
// to the hub, never to servers that the hub redirects to.
//
// # Cache
//
//	models--ORG--NAME/refs/REVISION            the commit that the revision named
//	models--ORG--NAME/blobs/DIGEST             the content of a file
//	models--ORG--NAME/blobs/DIGEST.incomplete  a partial download of it
//	models--ORG--NAME/snapshots/COMMIT/FILE    a link to its blob
//	models--ORG--NAME/.no_exist/COMMIT/FILE    an empty file: the commit lacks FILE
//	.locks/models--ORG--NAME/DIGEST.lock       locked by the process that fetches it
//
// # Environment
//
//	HF_ENDPOINT                          the hub; https://huggingface.co
//	HF_TOKEN, HUGGING_FACE_HUB_TOKEN     the token
//	HF_TOKEN_PATH                        a file with the token; HF_HOME/token
//	HF_HUB_DISABLE_IMPLICIT_TOKEN        1: no token from the environment
//	HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE  the cache; HF_HOME/hub
//	HF_HOME                              XDG_CACHE_HOME/huggingface, or ~/.cache/huggingface
//	HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE 1: never use the network
//
// Layout: https://huggingface.co/docs/huggingface_hub/guides/manage-cache
package hub
