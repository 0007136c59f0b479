import Cryptography
import Foundation
import HubCore
import Wire

extension APNsCredential {
  /// Opens the archive of a certificate credential.
  static func identity(_ archive: String, password: String) throws(CredentialError)
    -> CertificateIdentity
  {
    guard let bytes = Base64.decode(archive) else {
      throw CredentialError("ApnsCertificate is not base 64: give the .p12 file in base 64.")
    }
    do {
      return try PKCS12.open(bytes, password: password)
    } catch  where error.kind == .wrongPassword {
      throw CredentialError(
        "CertificateKey is wrong: the .p12 file in ApnsCertificate does not open with it.")
    } catch {
      throw CredentialError("ApnsCertificate cannot be used: \(error.message)")
    }
  }

  /// Checks what a certificate credential promises, so that a bad one is refused when it is set and
  /// not when the first push fails (spec `pns/apns.md` 2.2).
  static func check(
    _ certificate: Certificate, thumbprint: String?, at now: Date, for endpoint: APNsEndpoint
  ) throws(CredentialError) -> Certificate.APNsPermissions {
    guard let permissions = certificate.apnsPermissions else {
      throw CredentialError(
        """
        ApnsCertificate is not an APNs certificate: it names no app (UID) or no environment. \
        Create an Apple Push Notification certificate for the app.
        """)
    }
    guard let end = certificate.notAfter, end > now else {
      throw CredentialError(
        "ApnsCertificate has expired\(dated(certificate.notAfter)): renew it with Apple.",
        isExpiry: true)
    }
    if let start = certificate.notBefore, start > now {
      throw CredentialError(
        "ApnsCertificate is not valid yet\(dated(start)): check this machine's clock.")
    }
    switch endpoint.environment {
    case .production? where !permissions.production:
      throw CredentialError(
        """
        ApnsCertificate is for development only, Endpoint for production: use a production \
        certificate or https://api.sandbox.push.apple.com.
        """)
    case .development? where !permissions.development:
      throw CredentialError(
        """
        ApnsCertificate is for production only, Endpoint for development: use a development \
        certificate or https://api.push.apple.com.
        """)
    default: break
    }
    if let thumbprint {
      let given = thumbprint.lowercased().filter { $0 != ":" && !$0.isWhitespace }
      guard given == Hex.encode(certificate.sha1Thumbprint) else {
        throw CredentialError(
          """
          Thumbprint is not that of the certificate in ApnsCertificate (its SHA-1 in hexadecimal); \
          correct it or leave it out.
          """)
      }
    }
    return permissions
  }

  private static func dated(_ date: Date?) -> String {
    date.map { " (\($0.formatted(.iso8601.year().month().day())))" } ?? ""
  }
}
