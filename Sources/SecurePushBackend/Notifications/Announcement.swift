import Foundation
import NotificationHubs
import SecurePush

/// Tells a user's devices that there is a message: those with a key get it sealed, the others only its
/// id. Goes to every platform; one that the hub has no credential for is skipped.
struct Announcement: Sendable {
  static let generalAlert = SecureMessage.genericAlert
  /// The tutorial's platforms; the others only when the user has such a device.
  private static let standardPlatforms: Set<PushPlatform> = [.apns, .fcmv1, .wns]
  /// Sends to single devices at once.
  private static let parallel = 8

  let hub: NotificationHubClient
  let devices: [StoredDevice]
  let report: @Sendable (BackendEvent) -> Void
  let sealsPayloads: Bool

  /// - Throws: ``APIFailure`` when the hub could not be reached for any platform.
  func send(_ id: String, payload: String, to user: UserName, alert: String?) async throws {
    let sealed = sealedDevices
    async let reached = sendSealed(id, payload: payload, to: sealed)
    var audience = TagExpression.tag(user.tag)
    if !sealed.isEmpty { audience = audience && !.tag(DeviceService.sealedTag) }
    let known = Set(devices.compactMap { PushPlatform(rawValue: $0.platform) })
    let message = SecureMessage(id: id)
    let presentation = alert.map(SecureMessage.Presentation.alert) ?? .background
    var failures: [NotificationHubError] = []
    var taken = 0
    for platform in PushPlatform.allCases
    where Self.standardPlatforms.contains(platform) || known.contains(platform) {
      guard let notification = message.notification(for: platform, as: presentation) else {
        continue
      }
      do {
        try await hub.send(notification, to: audience)
        taken += 1
      } catch let error as NotificationHubError {
        failures.append(error)
        report(.platformSkipped(platform, reason: error.description))
      }
    }
    taken += await reached
    guard taken == 0, let failure = failures.last(where: Self.isHubTrouble) else { return }
    throw APIFailure(hub: failure)
  }

  private static func isHubTrouble(_ error: NotificationHubError) -> Bool {
    error.kind != .badRequest
  }

  /// Installations whose public key can be used.
  private var sealedDevices: [(SealingRecipient, PushPlatform)] {
    guard sealsPayloads else { return [] }
    return devices.compactMap { device in
      guard device.isInstallation, let platform = PushPlatform(rawValue: device.platform),
        let key = device.sealingKey.flatMap({ SealingPublicKey($0) })
      else { return nil }
      return (SealingRecipient(installationID: device.id, publicKey: key), platform)
    }
  }

  /// - Returns: How many the hub took.
  private func sendSealed(
    _ id: String, payload: String, to devices: [(SealingRecipient, PushPlatform)]
  ) async -> Int {
    await withTaskGroup(of: Bool.self) { group in
      var rest = devices.makeIterator()
      var taken = 0
      func addNext() {
        guard let (recipient, platform) = rest.next() else { return }
        group.addTask { await sendSealed(id, payload: payload, to: recipient, platform) }
      }
      for _ in 0..<Self.parallel { addNext() }
      for await isTaken in group {
        if isTaken { taken += 1 }
        addNext()
      }
      return taken
    }
  }

  private func sendSealed(
    _ id: String, payload: String, to recipient: SealingRecipient, _ platform: PushPlatform
  ) async -> Bool {
    do {
      let message = SecureMessage(
        id: id, sealed: try SecurePush.seal(Data(payload.utf8), id: id, for: recipient))
      let presentation = SecureMessage.Presentation.alert(Self.generalAlert)
      // Too large for the platform: the device fetches it by its id.
      guard
        let notification = message.fitting(platform, as: presentation)
          .notification(for: platform, as: presentation)
      else { return false }
      try await hub.send(notification, to: .installation(recipient.installationID))
      return true
    } catch {
      report(.sealingFailed(reason: "\(error)"))
      return false
    }
  }
}
