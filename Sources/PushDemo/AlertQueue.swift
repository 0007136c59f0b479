/// Texts that wait for their turn to be shown over the app: iOS drops an alert that is presented while
/// another is up, or before the screen is.
public struct AlertQueue: Sendable {
  private var waiting: [String] = []
  private var isShowing = false
  private var hasScreen = false

  public init() {}

  /// - Returns: What to present now.
  public mutating func add(_ text: String) -> String? {
    waiting.append(text)
    return next()
  }

  /// The screen has appeared, or gone.
  /// - Returns: What to present now.
  public mutating func screen(isThere: Bool) -> String? {
    hasScreen = isThere
    // An alert goes with its screen.
    if !isThere { isShowing = false }
    return next()
  }

  /// The person has closed the alert.
  /// - Returns: What to present now.
  public mutating func closed() -> String? {
    isShowing = false
    return next()
  }

  private mutating func next() -> String? {
    guard hasScreen, !isShowing, !waiting.isEmpty else { return nil }
    isShowing = true
    return waiting.removeFirst()
  }
}
