"""What the terminal itself says, in both languages."""

# ruff: noqa: RUF001 - Chinese punctuation is meant.
from __future__ import annotations

from collections.abc import Mapping

__all__ = ["TEXTS"]

TEXTS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "title": "Order assistant",
        "customer": "Signed in as {name} ({id}), conversation “{thread}”",
        "model": "Model: {name}",
        "offline": "Model: offline planner (rules and templates, not a language model)",
        "hint": "Ask in English or Chinese. /help: what I can do, /new: start over, /quit: leave.",
        "continued": "Continuing where you left off ({turns} questions so far); /new starts over.",
        "unfinished": "The last answer was cut off; finishing it now.",
        "new": "New conversation “{thread}”.",
        "you": "You",
        "assistant": "Assistant",
        "done": "done",
        "failed": "failed",
        "stopped": "not run",
        "ended": "Stopped before an answer ({reason}): {detail}",
        "step_budget": "step limit",
        "token_budget": "token limit",
        "cost_budget": "cost limit",
        "deadline": "out of time",
        "failures": "too many failures",
        "repeated_call": "the same call again and again",
        "handoff": "handed over to a person",
        "rejected": "rejected by a person",
        "jump": "ended by a rule",
        "error": "The assistant could not answer: {error}",
        "left": "Left. Your conversation is kept: come back with --customer {customer} --thread {thread}",
        "commands": "/new  start a new conversation\n/quit leave (also Ctrl-D, Ctrl-C)",
        "unknown_command": "There is no command {command}. Try /help.",
    },
    "zh": {
        "title": "订单助手",
        "customer": "当前用户：{name}（{id}），会话“{thread}”",
        "model": "模型：{name}",
        "offline": "模型：离线规划器（固定规则和模板，不是语言模型）",
        "hint": "请用中文或英文提问。/help 查看功能，/new 重新开始，/quit 退出。",
        "continued": "接着上次的会话（已有 {turns} 个问题）；/new 重新开始。",
        "unfinished": "上次的回答被中断，现在继续。",
        "new": "新会话“{thread}”。",
        "you": "您",
        "assistant": "助手",
        "done": "完成",
        "failed": "失败",
        "stopped": "未执行",
        "ended": "未得出答案即停止（{reason}）：{detail}",
        "step_budget": "达到步数上限",
        "token_budget": "达到令牌上限",
        "cost_budget": "达到费用上限",
        "deadline": "超时",
        "failures": "失败次数过多",
        "repeated_call": "重复同一调用",
        "handoff": "已转人工",
        "rejected": "被人工拒绝",
        "jump": "按规则结束",
        "error": "助手无法回答：{error}",
        "left": "已退出。会话已保存，继续请用 --customer {customer} --thread {thread}",
        "commands": "/new  开始新会话\n/quit 退出（也可按 Ctrl-D 或 Ctrl-C）",
        "unknown_command": "没有命令 {command}。请试试 /help。",
    },
}
