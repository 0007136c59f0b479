package import HubCore
import NotificationHubs

/// A gateway that can try its credential without bothering a device.
package protocol ProbingGateway: PushGateway {
  func probe() async -> CredentialProbe
}

extension PushGatewayDirectory: CredentialProber {
  /// Makes a gateway for the purpose: one in use keeps its place.
  package func probe(
    _ credential: PushCredential
  ) async throws(CredentialError) -> CredentialProbe {
    guard let gateway = try makeGateway(for: credential) as? any ProbingGateway else {
      return CredentialProbe(
        .untried, "This build cannot try a credential for \(credential.platform.rawValue).")
    }
    return await gateway.probe()
  }
}

extension PushBatch {
  /// A push for one handle.
  init(to handle: String, _ body: PushBody) {
    let bytes = Array(handle.utf8)
    self.init(
      requests: [
        PushRequest(
          id: PushID(high: 0x6265_6c66_7279, low: 0x70_726f_6265), handle: 0..<bytes.count, body: 0,
          confirmedAt: 0)
      ], bodies: [body], handles: bytes)
  }
}
