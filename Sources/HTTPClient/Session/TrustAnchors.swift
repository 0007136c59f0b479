import CCurl
import Foundation

/// What a session trusts. Extra anchors take the place of libcurl's bundle, not of its directory of
/// certificates; where it has no such directory, the system's bundle is put beside them.
struct TrustAnchors {
  /// PEM; empty for libcurl's own choice.
  let pem: [UInt8]

  init(extraPEM: [UInt8]) {
    guard !extraPEM.isEmpty else {
      pem = []
      return
    }
    pem = Self.hasDirectory ? extraPEM : extraPEM + [UInt8(ascii: "\n")] + Self.systemBundle()
  }

  private static let hasDirectory: Bool = {
    guard let path = belfry_curl_default_directory() else { return false }
    let found = try? FileManager.default.contentsOfDirectory(atPath: String(cString: path))
    return found?.isEmpty == false
  }()

  /// Where systems keep their bundle, after libcurl's own word.
  private static let usualPlaces = [
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem",
    "/opt/homebrew/etc/ca-certificates/cert.pem", "/usr/local/etc/ca-certificates/cert.pem",
  ]

  private static func systemBundle() -> [UInt8] {
    let own = belfry_curl_default_bundle().map { [String(cString: $0)] } ?? []
    for path in own + usualPlaces {
      if let data = FileManager.default.contents(atPath: path), !data.isEmpty { return Array(data) }
    }
    return []
  }
}
