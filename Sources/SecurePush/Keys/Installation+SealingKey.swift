public import NotificationHubs

extension Installation {
  /// The name of the push variable with a device's public key.
  public static let sealingKeyVariable = "securePushKey"

  /// The public key with which payloads for this device are sealed, stored as the push variable
  /// ``sealingKeyVariable``, which both Azure Notification Hubs and Belfry preserve. `nil` if the
  /// device has none, or one of a kind unknown to this version.
  public var sealingKey: SealingPublicKey? {
    get { pushVariables[Self.sealingKeyVariable].flatMap { SealingPublicKey($0) } }
    set { pushVariables[Self.sealingKeyVariable] = newValue?.description }
  }
}
