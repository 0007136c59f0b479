import Cryptography
package import Foundation

/// `.p12` files as Apple hands them out, by an authority of a test's own.
package enum CertificateArchive {
  /// - Parameter lifetime: From `now` on, in seconds.
  /// - Returns: The file in base 64.
  package static func make(
    bundleID: String = "com.example.app", lifetime: TimeInterval, now: Date, password: String
  ) throws -> String {
    let authority = try CertificateAuthority(commonName: "Test", at: now)
    var request = CertificateAuthority.LeafRequest(commonName: "Apple Push Services")
    request.userID = bundleID
    request.apnsExtensions = [APNsExtension.development, APNsExtension.production]
    request.lifetime = lifetime
    let identity = try authority.issue(request, at: now)
    return Data(try PKCS12.make(identity, password: password, name: "test")).base64EncodedString()
  }
}
