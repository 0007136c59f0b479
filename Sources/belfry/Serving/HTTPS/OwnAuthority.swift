import Cryptography
import Foundation
import HTTPClient

/// The authority of `tlsSelfSigned`: made on first use and kept in the data directory, so that
/// clients that trust its certificate once go on trusting the server.
struct OwnAuthority: Sendable {
  /// PEM; what clients are to trust.
  let certificateFile: String
  private let authority: CertificateAuthority
  private let names: [String]

  /// - Parameter names: Host names and addresses, beside those of this machine, that the server's
  ///   certificate is to be valid for.
  /// - Throws: ``CommandFailure`` when the files are there but unusable, or cannot be made.
  init(in data: DataDirectory, names: [String]) throws {
    certificateFile = data.path + "/tls-ca.pem"
    let keyFile = data.path + "/tls-ca-key.pem"
    self.names = names
    let files = FileManager.default
    if files.fileExists(atPath: certificateFile) || files.fileExists(atPath: keyFile) {
      do {
        authority = try CertificateAuthority(
          certificate: Certificate(pem: String(contentsOfFile: certificateFile, encoding: .utf8)),
          key: P256PrivateKey(pem: String(contentsOfFile: keyFile, encoding: .utf8)))
      } catch {
        throw CommandFailure(
          "\(certificateFile) and \(keyFile) are no authority with its key (\(error)); put both "
            + "back, or remove both to have them made again", exitCode: .usage)
      }
    } else {
      authority = try CertificateAuthority(
        commonName: "Belfry at \(ProcessInfo.processInfo.hostName)")
      try Self.write(try authority.key.pem(), to: keyFile)
      try Self.write(authority.certificate.pem, to: certificateFile)
    }
  }

  /// A certificate for this machine and the further names, valid for a year.
  func issue(at now: Date) throws(CryptographyError) -> CertificateIdentity {
    var request = CertificateAuthority.LeafRequest(commonName: "localhost")
    request.clientAuthentication = false
    request.dnsNames = ["localhost"]
    request.ipAddresses = ["127.0.0.1", "::1"]
    for name in names + [ProcessInfo.processInfo.hostName] {
      if IPAddress(name) != nil {
        let isEverywhere = ["0.0.0.0", "::"].contains(name)
        if !isEverywhere, !request.ipAddresses.contains(name) { request.ipAddresses.append(name) }
      } else if !request.dnsNames.contains(name) {
        request.dnsNames.append(name)
      }
    }
    return try authority.issue(request, at: now)
  }

  /// Whole or not at all, readable by the owner only from its first byte.
  private static func write(_ text: String, to path: String) throws {
    let temporary = path + ".new"
    guard
      FileManager.default.createFile(
        atPath: temporary, contents: Data(text.utf8), attributes: [.posixPermissions: 0o600]),
      rename(temporary, path) == 0
    else {
      throw CommandFailure(
        "\(path) cannot be written: \(String(cString: strerror(errno)))", exitCode: .usage)
    }
  }
}
