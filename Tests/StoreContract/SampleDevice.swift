package import Foundation
package import HubCore
package import NotificationHubs

/// A device for store tests, with the registrations that the hub derives from it
/// (docs/protocol/rest.md, section 4.6).
package struct SampleDevice: Sendable {
  package var installation: Installation
  package var expiresAt: Date?

  package init(
    _ id: String, handle: String? = nil, platform: PushPlatform = .apns, user: String? = nil,
    tags: [Tag] = [], templates: [String: PushTemplate] = [:], variables: [String: String] = [:]
  ) {
    installation = Installation(
      installationID: id, userID: user, platform: platform,
      pushChannel: .handle(handle ?? "HANDLE-\(id)"), tags: tags, pushVariables: variables,
      templates: templates)
  }

  /// One native registration, and one for each template.
  package var registrations: [RegistrationDraft] {
    Self.registrations(of: installation, expiresAt: expiresAt)
  }

  package static func registrations(
    of installation: Installation, expiresAt: Date? = nil
  ) -> [RegistrationDraft] {
    var tags = [Tag(rawValue: "$InstallationId:{\(installation.installationID)}")]
    if let user = installation.userID { tags.append(Tag(rawValue: "$UserId:{\(user)}")) }
    tags += installation.tags
    var native = RegistrationDraft(
      kind: .native, platform: installation.platform, channel: installation.pushChannel, tags: tags,
      pushVariables: installation.pushVariables, expiresAt: expiresAt)
    var all = [native]
    for (name, template) in installation.templates.sorted(by: { $0.key < $1.key }) {
      native.kind = .template(template, name: name)
      native.tags = tags + template.tags + [Tag(rawValue: name)]
      all.append(native)
    }
    return all
  }
}

extension HubStore {
  /// The first 1000 installations.
  package func installations(hub: Hub.ID) async throws -> [Installation] {
    try await installations(InstallationFilter(asOf: .now), hub: hub, after: nil, limit: 1000)
      .installations
  }

  /// Writes the device and its registrations.
  package func put(_ device: SampleDevice, hub: Hub.ID, at: Date) async throws {
    try await putInstallation(
      device.installation, registrations: device.registrations, request: nil, hub: hub, at: at)
  }
}

extension TargetPage {
  /// The handles in the order of the targets.
  package var handleTexts: [String] {
    targets.map { String(decoding: handles[$0.handle], as: UTF8.self) }
  }
}
