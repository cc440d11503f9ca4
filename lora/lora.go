// Package lora puts small trainable matrices beside the frozen linear layers of a model.
//
// A layer with weight W [Out, In] computes, instead of x·Wᵀ,
//
//	y = x·Wᵀ + Scale·(x·Aᵀ)·Bᵀ      A [Rank, In], B [Out, Rank], Scale = Alpha/Rank
//
// and only A and B are trained. B starts at 0, so a new adapter changes nothing.
//
// The package knows nothing of models: it is told names and sizes of layers ([New]), is called at each of them while a
// graph is built ([Config.Hook]), reads and writes the files of Hugging Face's PEFT ([Load], [Adapter.Save]), and adds
// itself to weights ([Adapter.Merge]).
//
// Two layouts occur. In memory and on disk A and B are PEFT's, as above. In graphs they are transposed, A [In, Rank]
// and B [Rank, Out], so that both products read them as the weights of the model are read, [in, out]; [Adapter.Params]
// and [Adapter.SetParams] convert.
//
// Source: Hu et al. 2021, https://arxiv.org/abs/2106.09685.
package lora
