import Foundation
import NotificationHubs

private let aboutChannels = """
  A channel belongs to the app and the environment of the hub's apns credential; APNs keeps it, the hub
  does not.
  """
private let aboutID = "the channel's id, as `belfry channel create` printed it"

extension Reader where Value == String {
  /// A channel id. Invalid ones are rejected here, since they would not survive in a URL.
  static let channelID = Reader { text, name throws(UsageError) in
    guard BroadcastChannel.isID(text) else {
      throw UsageError(
        "\(name): '\(text)' is not a channel id; one looks like dHN0LXNyY2gtY2hubA==, and `belfry "
          + "channel list` has them")
    }
    return text
  }
}

struct ChannelCreateCommand: ResultCommand {
  static let about = CommandHelp(
    "channel create", "make a broadcast channel, which Live Activities follow",
    discussion: """
      All Live Activities of one event, such as a match, follow one channel, and one request updates
      them all. The app passes the printed id to ActivityKit: pushType: .channel(id). An app has at
      most 10 000 channels; delete those whose event is over.

      \(aboutChannels)
      """,
    examples: ["belfry channel create", "belfry channel create --storage none --json"])

  let client = ClientOptions(belfryOnly: "Manage")
  @Option(
    "--storage", "WHAT",
    "latest: the newest update waits for who is offline; none: nothing waits, and Apple lets you "
      + "send more often", .one(of: [.latestMessage, .noMessage]))
  var storage = BroadcastChannel.Storage.latestMessage

  func result(in context: CommandContext) async throws -> CommandResult {
    let channel = try await client.withHub(.changes, in: context) {
      try await $0.client.createBroadcastChannel(storing: storage)
    }
    let hubOptions = client.location.options
    return CommandResult(
      written: channel.json,
      channel.lines + [
        "follow it: belfry phone --channel \(channel.id)\(hubOptions)",
        "send to it: belfry channel send \(channel.id)\(hubOptions) --state '{\"score\":1}'",
      ])
  }
}

struct ChannelListCommand: ResultCommand {
  static let about = CommandHelp(
    "channel list", "list the ids of all broadcast channels", discussion: aboutChannels,
    examples: ["belfry channel list", "belfry channel list --json"])

  let client = ClientOptions(belfryOnly: "Manage")

  func result(in context: CommandContext) async throws -> CommandResult {
    try await client.withHub(in: context) { access in
      let ids = try await access.client.broadcastChannels()
      return CommandResult(
        written: BroadcastChannel.list(ids),
        ids + ["\(ids.count.counted("channel")) of hub \(access.hub)"])
    }
  }
}

struct ChannelShowCommand: ResultCommand {
  static let about = CommandHelp(
    "channel show", "show what APNs knows of a broadcast channel", discussion: aboutChannels,
    examples: ["belfry channel show dHN0LXNyY2gtY2hubA=="])

  @Argument("ID", aboutID, .channelID) var id: String
  let client = ClientOptions(belfryOnly: "Manage")

  func result(in context: CommandContext) async throws -> CommandResult {
    let channel = try await client.withHub(in: context) {
      try await $0.client.broadcastChannel(id)
    }
    return CommandResult(written: channel.json, channel.lines)
  }
}

extension BroadcastChannel {
  fileprivate var lines: [String] {
    let sentence =
      switch storage {
      case .noMessage: "none: who is offline misses an update"
      case .latestMessage: "latest: the newest update waits for who is offline"
      }
    return ["channel   \(id)", "storage   \(sentence)"]
  }
}

struct ChannelDeleteCommand: ResultCommand {
  static let about = CommandHelp(
    "channel delete", "delete a broadcast channel; who follows it gets nothing more",
    discussion: aboutChannels, examples: ["belfry channel delete dHN0LXNyY2gtY2hubA=="])

  @Argument("ID", aboutID, .channelID) var id: String
  let client = ClientOptions(belfryOnly: "Manage")

  func result(in context: CommandContext) async throws -> CommandResult {
    try await client.withHub(.changes, in: context) {
      try await $0.client.delete(broadcastChannel: id)
    }
    return CommandResult(["deleted": id], ["channel \(id) is deleted"])
  }
}

struct ChannelSendCommand: ResultCommand {
  static let about = CommandHelp(
    "channel send", "send an update to all Live Activities that follow a channel",
    discussion: """
      Returns when APNs has accepted or refused the update. APNs does not report how many devices
      follow the channel.

      \(aboutChannels)
      """,
    examples: [
      "belfry channel send dHN0LXNyY2gtY2hubA== --state '{\"home\":1,\"away\":0}'",
      "belfry channel send dHN0LXNyY2gtY2hubA== --state final.json --end --until +1h",
      "belfry channel send dHN0LXNyY2gtY2hubA== --apns payload.json --priority 5",
    ])

  @Argument("ID", aboutID, .channelID) var id: String
  let client = ClientOptions(belfryOnly: "Send", directoryAccess: .server)
  @Option(
    "--state", "FILE",
    "the activity's new content state: a file, - for standard input, or the JSON itself")
  var state: String?
  @Flag("--end", "with --state: end the activities with this state") var isEnd
  @Option("--apns", "FILE", "in place of --state: the whole payload, as it is") var file: String?
  @Option(
    "--until", "TIME",
    "how long it may wait where the channel stores: 2030-01-05T10:00:00Z, or +10m (default: not at "
      + "all)", .instant) var until: Date?
  @Option(
    "--priority", "N", "10, or 5, which does not count against the budget",
    Reader(
      words: ["10", "5", "1"], show: { "\($0.rawValue)" },
      read: { text, name throws(UsageError) in
        if let priority = Int(text).flatMap(APNsPayload.Priority.init(rawValue:)) {
          return priority
        }
        throw UsageError("\(name) must be 10, 5 or 1, not \(text)")
      })) var priority = APNsPayload.Priority.immediate

  func result(in context: CommandContext) async throws -> CommandResult {
    let payload = try payload()
    let receipt = try await client.withHub(.changes, in: context) {
      try await $0.client.send(
        payload: payload, toChannel: id, priority: priority,
        expiration: until.map { .at($0) } ?? .once)
    }
    var lines = ["APNs has taken it: request \(receipt.requestID)"]
    if let uniqueID = receipt.uniqueID {
      lines.append("in the delivery log of Apple's Push Notifications Console: \(uniqueID)")
    }
    return CommandResult(written: receipt.json, lines)
  }

  private func payload() throws -> Data {
    try UsageError.check(exclusive: $state, $file)
    if let state {
      let content = try TextInput.json(try TextInput.read(state), of: "--state")
      do {
        return try APNsPayload.broadcast(
          isEnd ? .end() : .update, contentState: PayloadValue(content)
        ).body
      } catch {
        throw UsageError("--state: \(error)")
      }
    }
    guard let file else { throw UsageError("say what to send: --state FILE, or --apns FILE") }
    guard !isEnd else {
      throw UsageError("--end goes with --state; in an --apns payload it is aps.event")
    }
    let payload = try TextInput.read(file)
    _ = try TextInput.json(payload, of: "--apns")
    return payload
  }
}
