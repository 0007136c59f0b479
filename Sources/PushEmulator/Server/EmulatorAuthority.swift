import Cryptography
import Foundation

/// The emulator's certificate authority, made or taken from an earlier run.
enum EmulatorAuthority {
  /// - Parameter directory: `nil` makes one that is not kept.
  /// - Returns: The authority, and the file with its certificate.
  static func load(
    directory: String?
  ) throws -> (authority: CertificateAuthority, file: String?) {
    guard let directory else { return (try make(), nil) }
    let certificateFile = directory + "/ca.pem"
    let keyFile = directory + "/ca-key.pem"
    if let certificate = try PrivateFile.read(certificateFile),
      let key = try PrivateFile.read(keyFile)
    {
      do {
        let authority = try CertificateAuthority(
          certificate: Certificate(pem: String(decoding: certificate, as: UTF8.self)),
          key: P256PrivateKey(pem: String(decoding: key, as: UTF8.self)))
        return (authority, certificateFile)
      } catch {
        throw EmulatorError.file(
          path: certificateFile,
          reason: "is no authority with its key in ca-key.pem (\(error)); remove both files to "
            + "have them made again")
      }
    }
    let authority = try make()
    try PrivateFile.write(Data(authority.key.pem().utf8), to: keyFile)
    try PrivateFile.write(Data(authority.certificate.pem.utf8), to: certificateFile)
    return (authority, certificateFile)
  }

  private static func make() throws(CryptographyError) -> CertificateAuthority {
    try CertificateAuthority(commonName: "Belfry emulator")
  }
}
