import Foundation
import NotificationHubs

struct DeviceSearchCommand: ResultCommand {
  static let about = CommandHelp(
    "device search", "find the device that a token or another handle belongs to",
    discussion: """
      Shows the installations and registrations that have the handle, on whatever platform. It must
      be complete: a token, a registration id, a channel's address, a browser's endpoint or its
      subscription as JSON. With - it is read from standard input, so that the shell does not
      remember it.

      Devices whose handle the push service has reported as dead are found for a week. The exit code
      is 1 if no device has the handle.
      """,
    examples: [
      "belfry device search 740F4707BEBCF74F9B7C25D48E3358945F6AA01DA5DDB387462C7EAF61BB78AD",
      "pbpaste | belfry device search - --json",
    ])

  @Argument("HANDLE", "the handle, or - for standard input") var handle: String
  let client = ClientOptions(belfryOnly: "Manage")

  func result(in context: CommandContext) async throws -> CommandResult {
    let handle =
      handle == "-" ? String(decoding: try TextInput.read(handle), as: UTF8.self) : handle
    return try await client.withHub(in: context) { access in
      let found = try await access.client.devices(withHandle: handle)
      let isEmpty = found.installations.isEmpty && found.registrations.isEmpty
      return CommandResult(
        written: found.json, isEmpty ? [] : Self.lines(found, of: access.hub),
        failure: isEmpty
          ? CommandFailure("no device in hub \(access.hub) has this handle") : nil)
    }
  }

  private static func lines(_ found: DeviceSearch, of hub: String) -> [String] {
    let registrations = found.registrations.map { one in
      [
        "registration", one.registrationID.padded(to: 36), one.platform.rawValue.padded(to: 7),
        one.template.map { $0.isEmpty ? "template" : "template \($0)" } ?? "native",
        one.installationID.map { "of \($0)" } ?? "",
        one.tags.map(\.rawValue).joined(separator: ", "),
      ].filter { !$0.isEmpty }.joined(separator: "  ")
    }
    return found.installations.map { "installation  " + ShownInstallation($0).line } + registrations
      + [
        found.installations.count.counted("installation") + " and "
          + found.registrations.count.counted("registration") + " in hub \(hub)"
          + (found.hasMore ? "; there are more" : "")
      ]
  }
}
