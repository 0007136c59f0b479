package import HubCore

/// Makes the gateways of one platform, and holds what they share.
package protocol PlatformGateways: Sendable {
  associatedtype Gateway: PushGateway

  /// - Throws: ``CredentialError`` when the credential cannot work.
  func gateway(for credential: PushCredential) throws -> Gateway
}
