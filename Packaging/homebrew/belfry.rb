# frozen_string_literal: true

# script/package writes address and checksum into this.
class Belfry < Formula
  desc "Self-hosted push notification hub, wire-compatible with Azure Notification Hubs"
  homepage "@HOMEPAGE@"
  url "@URL@"
  version "@VERSION@"
  sha256 "@SHA256@"
  license "Apache-2.0"

  depends_on "pkgconf" => :build
  depends_on xcode: ["16.3", :build] if OS.mac?
  depends_on "croaring"
  depends_on "curl"
  depends_on "libmicrohttpd"
  depends_on "libnghttp2"
  depends_on "libpq"
  depends_on macos: :sequoia
  depends_on "openssl@3"
  depends_on "sqlite"
  uses_from_macos "zlib"

  def install
    # These two are not linked into Homebrew's prefix.
    ENV.prepend_path "PKG_CONFIG_PATH", formula_opt_lib("libpq")/"pkgconfig"
    ENV.prepend_path "PKG_CONFIG_PATH", formula_opt_lib("curl")/"pkgconfig"
    system "script/swift", "build", "--disable-sandbox", "-c", "release", "--product", "belfry"
    bin.install ".build/release/belfry"
    pkgetc.install "Packaging/belfry.json"
    doc.install "belfry.example.json"
    (man1/"belfry.1").write Utils.safe_popen_read(bin/"belfry", "manual")
    generate_completions_from_executable(bin/"belfry", "completions")
  end

  def formula_opt_lib(name) = Formula[name].opt_lib

  service do
    run [opt_bin/"belfry", "serve", "--config", etc/"belfry/belfry.json", "--data", var/"belfry"]
    keep_alive crashed: true
    log_path var/"log/belfry.log"
    error_log_path var/"log/belfry.log"
  end

  test do
    assert_equal "belfry #{version}", shell_output("#{bin}/belfry --version").strip
    system bin/"belfry", "demo", "--exit"
  end
end
