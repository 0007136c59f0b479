import Foundation
import NotificationHubs

struct DeviceSearchCommand: Subcommand {
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

  func run(in context: CommandContext) async throws {
    let handle =
      handle == "-" ? String(decoding: try TextInput.read(handle), as: UTF8.self) : handle
    let access = try await client.access(.looks("Manage"), in: context)
    let found = try await access.calling {
      try await access.client.devices(withHandle: handle)
    }
    if client.json {
      context.printJSON(written: found.json)
    } else {
      show(found, of: access.hub, in: context)
    }
    if found.installations.isEmpty, found.registrations.isEmpty {
      throw CommandFailure("no device in hub \(access.hub) has this handle")
    }
  }

  private func show(_ found: DeviceSearch, of hub: String, in context: CommandContext) {
    for installation in found.installations {
      context.print("installation  " + ShownInstallation(installation).line)
    }
    for one in found.registrations {
      context.print(
        [
          "registration", one.registrationID.padded(to: 36), one.platform.rawValue.padded(to: 7),
          one.template.map { $0.isEmpty ? "template" : "template \($0)" } ?? "native",
          one.installationID.map { "of \($0)" } ?? "",
          one.tags.map(\.rawValue).joined(separator: ", "),
        ].filter { !$0.isEmpty }.joined(separator: "  "))
    }
    guard !found.installations.isEmpty || !found.registrations.isEmpty else { return }
    context.print(
      found.installations.count.counted("installation") + " and "
        + found.registrations.count.counted("registration") + " in hub \(hub)"
        + (found.hasMore ? "; there are more" : ""))
  }
}
