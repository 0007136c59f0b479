import Cryptography
import Foundation
import HTTPServer

extension Checkup {
  func certificates() -> [Finding] {
    if let certificate = configuration.text(.tlsCertificate) {
      let files = CertificateFiles(
        certificate: certificate, key: configuration.text(.tlsKey) ?? certificate)
      do {
        let end = try files.read().certificate.notAfter ?? .distantFuture
        let advice = "renew it (\(certificate)); a running server takes the new files up"
        return [
          expiry("certificate", of: "the HTTPS certificate", end, do: advice)
            ?? .ok("certificate", "the HTTPS certificate is valid until \(end.formatted(.iso8601))")
        ]
      } catch {
        return [
          .error(
            "certificate", "\(error)", why: "a server does not start with it",
            do: "fix the two files")
        ]
      }
    }
    let own = data.path + "/" + BackupPart.authority.rawValue
    guard let pem = try? String(contentsOfFile: own, encoding: .utf8),
      let end = (try? Certificate(pem: pem))?.notAfter
    else { return [] }
    let advice =
      "with the server stopped remove \(own) and \(BackupPart.authorityKey.rawValue); clients have to "
      + "trust the new one"
    return [expiry("certificate", of: "the authority of tlsSelfSigned", end, do: advice)]
      .compactMap(\.self)
  }

  func proxies() -> [Finding] {
    let proxies = configuration.list(.trustedProxies)
    let speaksTLS = configuration.text(.tlsCertificate) != nil || configuration.flag(.tlsSelfSigned)
    do { _ = try TrustedProxies(proxies) } catch {
      return [
        .error(
          "proxy", "trustedProxies: \(error)", why: "a server does not start with it", do: "fix it"
        )
      ]
    }
    var findings: [Finding] = []
    let scheme = configuration.text(.publicScheme)
    if scheme == "https", !speaksTLS, proxies.isEmpty {
      findings.append(
        .warning(
          "proxy",
          "publicScheme says that a proxy speaks TLS in front, and trustedProxies names none",
          why:
            "all clients have the proxy's address: they share one limit on connections and on wrong "
            + "passwords", do: "set trustedProxies to the proxy's address"))
    }
    if !proxies.isEmpty, !speaksTLS, scheme != "https" {
      findings.append(
        .warning(
          "proxy", "a proxy is trusted, and publicScheme is not https",
          why: "addresses in replies (Location, the portal's sign-in) begin with http",
          do: "set publicScheme to https if the proxy speaks TLS"))
    }
    let address = configuration.text(.address) ?? "127.0.0.1"
    if !speaksTLS, proxies.isEmpty, !["127.0.0.1", "::1", "localhost"].contains(address) {
      findings.append(
        .warning(
          "proxy", "it listens on \(address) without TLS",
          why: "keys, tokens and payloads travel in the clear",
          do: "give it a certificate, or put a proxy in front (docs/operate/proxies.md)"))
    }
    return findings.isEmpty
      ? [.ok("proxy", "the settings for proxies and TLS fit together")] : findings
  }
}
