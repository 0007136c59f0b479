package import NotificationHubs

/// A device that a notification failed for, with what is still known of it.
package struct FailedTarget: Hashable, Sendable {
  package let failure: Checkpoint.Failure
  /// `nil` when a template send failed for a device whose registration has gone since.
  package let platform: PushPlatform?
  /// In the form of ``TargetPage/handles``; `nil` when the registration has gone since, for
  /// another reason than this failure.
  package let handle: String?
  /// What clients call the registration; `nil` for a direct send.
  package let registrationID: String?
  /// `nil` for a direct send, and for a device without installation.
  package let installationID: String?

  package init(
    failure: Checkpoint.Failure, platform: PushPlatform?, handle: String?,
    registrationID: String?, installationID: String?
  ) {
    self.failure = failure
    self.platform = platform
    self.handle = handle
    self.registrationID = registrationID
    self.installationID = installationID
  }
}
