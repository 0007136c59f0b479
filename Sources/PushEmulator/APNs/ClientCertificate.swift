import Cryptography
import Wire

/// A client certificate shown to APNs in the TLS handshake.
struct ClientCertificate: Sendable {
  /// Lower-case hex.
  let sha256: String
  /// Whether it chains to an authority the emulator knows, and is within its dates.
  let isVerified: Bool
  /// What it allows; `nil` when it is no APNs certificate.
  let permissions: Certificate.APNsPermissions?

  init(der: [UInt8], isVerified: Bool) {
    let certificate = try? Certificate(der: der)
    sha256 = Hex.encode(certificate?.sha256Thumbprint ?? [])
    self.isVerified = isVerified && certificate != nil
    permissions = certificate?.apnsPermissions
  }

  /// The app the certificate is for, or the reason to refuse every request
  /// (emulator.md, section 4.1).
  func judge(
    accounts: APNsAccounts, environment: APNsEnvironment
  ) -> Result<APNsApp, APNsRefusal> {
    guard isVerified, let permissions,
      let app = accounts.apps.values.first(where: {
        $0.certificates.contains(sha256) || $0.bundleID == permissions.bundleID
      })
    else { return .failure(.init(.badCertificate)) }
    let allowed = environment == .production ? permissions.production : permissions.development
    return allowed ? .success(app) : .failure(.init(.badCertificateEnvironment))
  }
}
