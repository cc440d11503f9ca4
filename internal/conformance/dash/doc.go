// Package dash tests the live page in Chromium: a run trains while the browser watches, and every view is used. It is a
// module of its own, because of chromedp.
//
//	ART_CHROMIUM=$(command -v chromium) ART_AXE=axe-core/axe.min.js go test -count=1 ./...
//
// ART_AXE is the script of axe-core from npm, which .ci/run fetches; without it accessibility is not checked. With
// ART_SHOTS=../../../docs/images the screenshots of the documentation are made again; they are compressed by
//
//	pngquant --quality 60-95 --strip --force --ext .png 64 docs/images/*.png
package dash
