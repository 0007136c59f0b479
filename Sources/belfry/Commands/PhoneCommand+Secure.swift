import Foundation
import NotificationHubs
import PushDemo

/// `belfry phone --secure`
extension PhoneCommand {
  func runSecure(in context: CommandContext) async throws {
    let running = try HubTarget.find(words, environment: context.environment)
      .flatMap { RunningUp.of($0, context.environment) }
    guard let address = words.value("--backend") ?? running?.backend else {
      throw UsageError("which backend? --backend URL, or start `belfry up`")
    }
    guard let backend = URL(string: address), backend.host() != nil else {
      throw words.fault("--backend: '\(address)' is no address")
    }
    let user = words.value("--user") ?? ""
    let topic = words.value("--topic") ?? StandIns.standardTopic
    let phone = try await SecurePhone.start(
      control: try EmulatorControl(
        words.value("--control") ?? running?.control ?? "http://127.0.0.1:9400"),
      topic: topic, backend: backend, user: user, password: words.value("--password") ?? user,
      installationID: words.value("--id") ?? UUID().uuidString.lowercased(),
      tags: words.value("--tags").map { TextInput.list($0).map { Tag(rawValue: $0) } }
        ?? DemoDevice.tags)
    try announce(phone, user: user, backend: address, in: context)
    var left = count
    for try await showing in phone.showings() {
      if client.json {
        try context.printJSON(showing)
      } else {
        for line in PhoneScreen.banner(showing.text.components(separatedBy: "\n"), app: topic) {
          context.print(line)
        }
        context.print(showing.source.explanation)
      }
      left -= 1
      if left == 0 { return }
    }
    throw CommandFailure("the emulator has ended the phone's connection", exitCode: .unreachable)
  }

  private func announce(
    _ phone: SecurePhone, user: String, backend: String, in context: CommandContext
  ) throws {
    if client.json {
      return try context.printJSON([
        "installationId": phone.installationID, "deviceId": phone.phone.device.deviceId,
        "token": phone.phone.token, "user": user,
      ])
    }
    context.print("signed in      \(user) at \(backend)")
    context.print("device token   \(phone.phone.token)")
    context.print("installation   \(phone.installationID)")
    context.print("waiting for notifications; Ctrl-C ends. \(user)'s own secret, from elsewhere:")
    let login = words.value("--password") == nil ? "\(user):\(user)" : user
    context.print("  curl -u \(CurlCommand.quoted(login)) -X POST \(backend)/api/notifications")
  }
}

extension SecurePhone.Source {
  /// In a line under the banner.
  var explanation: String {
    switch self {
    case .plain: "in the clear: push service and hub could read it"
    case .opened: "sealed in the push, opened on the phone without asking anybody"
    case .fetched: "only an id in the push; fetched from the backend"
    case .unavailable: "neither opened nor fetched: a general text stands for it"
    }
  }
}
