// Package dash tests the live page in Chromium: a run trains while the browser watches, and every view is used. It is a
// module of its own, because of chromedp.
//
//	ART_CHROMIUM=$(command -v chromium) ART_AXE=axe-core/axe.min.js go test -count=1 ./...
//
// ART_AXE is the script of axe-core from npm, which .ci/run fetches; without it accessibility is not checked.
//
// The screenshots of the documentation are of trainings of examples/tictactoe in one folder, whose name they show:
//
//	RUNS=$(mktemp -d)/.art
//	for seed in 1 2 3; do go run ./examples/tictactoe -seed $seed -dir $RUNS -steps 40 -group 16 -measure 100; done
//	cd internal/dev/conformance/dash
//	ART_RUNS=$RUNS ART_SHOTS=../../../docs/images ART_CHROMIUM=$(command -v chromium) go test -count=1 -run Shots ./...
//	cd ../../../docs/images
//	pngquant --speed 1 --nofs --strip --force --ext .png 32 dash-*.png
//	pngquant --speed 1 --nofs --strip --force --ext .png 16 $(ls dash-*.png | grep -v -e group- -e run-)
package dash
