package import NotificationHubs

/// Tries a credential at its push service in a way that no device notices.
package protocol CredentialProber: Sendable {
  /// - Throws: ``CredentialError`` when the credential cannot work, whatever the service says.
  func probe(_ credential: PushCredential) async throws(CredentialError) -> CredentialProbe
}
