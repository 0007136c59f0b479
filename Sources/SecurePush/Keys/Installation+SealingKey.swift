public import NotificationHubs

extension Installation {
  /// The name of the push variable that carries a device's public key.
  public static let sealingKeyVariable = "securePushKey"

  /// The public key that payloads for this device are sealed with; it travels as the push variable
  /// ``sealingKeyVariable``, which Azure Notification Hubs keeps as well as Belfry does. `nil` when
  /// the device has none, or one of a kind this version does not know.
  public var sealingKey: SealingPublicKey? {
    get { pushVariables[Self.sealingKeyVariable].flatMap { SealingPublicKey($0) } }
    set { pushVariables[Self.sealingKeyVariable] = newValue?.description }
  }
}
